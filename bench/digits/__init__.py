"""Small networks on scikit-learn's digits: trained, compressed, beside small dense ones."""
