"""Prepares for jobs: a session, Ottla on its workers, and a check of both."""
