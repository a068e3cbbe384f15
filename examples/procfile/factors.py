"""What all processes of this app share: a number, taken apart."""

LIMIT = 10**12  # keeps the longest search well under a second


def factors(number):
    """The prime factors of a number from 1 to LIMIT, smallest first; none for 1."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    if number > 1:
        found.append(number)
    return found


def sentence(number):
    """The number as a product, or that it is prime."""
    parts = factors(number)
    if len(parts) == 1:
        return f"{number} is prime"
    return f"{number} = {' × '.join(map(str, parts)) or 1}"
