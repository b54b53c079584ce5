"""What all processes of a store have in common: settings, users, libraries of functions, and which keys have changed
for who tracks them."""
