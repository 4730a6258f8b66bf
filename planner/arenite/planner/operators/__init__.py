"""What operators mean: each class states its traits once, and nobody asks for a name.

The base class promises nothing; an operator that nobody knows is one of that class. Traits
that several classes share are mixins, one a module. Importers choose the class of each operator
of their format in one table; the runtime's own operators are classes of these mixins too.
"""
