"""``python -m sklearn_ethiclens``: the command line."""

from sklearn_ethiclens.cli import main

if __name__ == "__main__":
    main()
