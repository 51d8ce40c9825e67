"""`headgate up`: starts the server processes, a worker and the scheduler, restarts what dies, and stops cleanly."""
