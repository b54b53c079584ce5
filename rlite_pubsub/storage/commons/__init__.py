"""What all processes of a store have in common: settings, users, and which keys have changed for who tracks them."""
