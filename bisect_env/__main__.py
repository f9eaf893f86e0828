"""``python -m bisect_env``."""

from bisect_env.cli.main import main

if __name__ == "__main__":
    main()
