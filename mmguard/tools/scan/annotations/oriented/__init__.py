"""Oriented boxes, as MMRotate trains on them: texts of DOTA, XML of DIOR and of HRSC."""
