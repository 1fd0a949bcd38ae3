import sys

from report import report

if __name__ == "__main__":
    print(report(sys.argv[1], sys.argv[2:]))
