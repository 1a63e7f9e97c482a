"""stub"""


class SlotDataLoader:
    pass
