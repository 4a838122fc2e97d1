"""What a node has done of late: its last hour in steps, its last failures, in files that outlive a worker.

Like the metrics' files they belong to a worker's place: who is started after a worker that has died goes on in them,
and any worker reads those of all. They stay from one start of the sidecar to the next: everything in them has its time.
"""
