"""Which of several memories each record lies in, so that reading and writing costs least."""
