"""`python -m recollect`: the command line, where the script is not on the path."""

from recollect.interfaces.cli.main import main

if __name__ == "__main__":
    main()
