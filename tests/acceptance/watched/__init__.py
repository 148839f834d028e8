"""An app that tells which worker process of q2 waits on the queue, and so holds its lock."""
