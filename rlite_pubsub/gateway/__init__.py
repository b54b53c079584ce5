"""HTTP over the same store: the event bus and its Server-Sent Events. Imported only where `http-port` says so."""
