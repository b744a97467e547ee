"""`python -m ottla` is the program `ottla`."""

from ottla_command import main

if __name__ == "__main__":
    main()
