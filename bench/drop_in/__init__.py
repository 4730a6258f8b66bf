"""Programs and packages written for other runtimes, run by the contest `drop-in`.

Each has a comment with its packages: `# packages:` for pip, `# alone:` for those to install
without what they depend on.
"""
