"""The pages of an environment's file: what they are used for, who keeps them from being reused, and giving them
back."""
