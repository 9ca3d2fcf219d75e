"""In place of the package that mmengine's PetrelBackend imports, which no index has."""
