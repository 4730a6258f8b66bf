"""What operators mean: each class states its traits, so no code depends on operator names.

The base class promises nothing; unknown operators belong to it. Traits that several classes
share are mixins, one per module. Each importer has one table from the operators of its format to
their classes; the runtime's own operators use the same mixins.
"""
