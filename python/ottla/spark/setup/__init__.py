"""What comes before a job: a session, Ottla on its workers, and a look at both."""
