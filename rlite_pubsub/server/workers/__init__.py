"""Several processes as one server: they share a store and its sockets, and somebody watches over them."""
