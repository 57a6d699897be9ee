"""`python -m lazyscope` is `lazyscope`, wherever the script is not on the path."""

from lazyscope.cli import main

if __name__ == "__main__":
    main(prog_name="python -m lazyscope")
