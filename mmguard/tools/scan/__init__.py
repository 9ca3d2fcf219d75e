"""What label files hold, before the first step of training."""
