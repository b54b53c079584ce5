"""What the workers of one server tell each other, so that it answers as one."""
