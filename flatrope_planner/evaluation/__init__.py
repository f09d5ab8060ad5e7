"""How well it drives, decides and communicates: closed loop, held-out scenes, middleware, and the report of a drive."""
