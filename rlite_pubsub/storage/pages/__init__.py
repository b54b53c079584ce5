"""What the pages of an environment's file are used for, who keeps them from being used again, and giving them back."""
