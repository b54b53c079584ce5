"""Places as scores: what Redis's documentation says of two towns, and nothing that is near is overlooked."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.keyspace import geohash
from rlite_pubsub.keyspace.geohash import Coordinates

PALERMO, CATANIA = Coordinates(13.361389, 38.115556), Coordinates(15.087269, 37.502669)


def test_two_towns_are_where_redis_has_them() -> None:
    scores = [geohash.score_of(town) for town in (PALERMO, CATANIA)]
    assert scores == [3479099956230698, 3479447370796909]
    towns = [geohash.place_of(score) for score in scores]
    assert towns[0] == (13.36138933897018433, 38.11555639549629859)
    assert [geohash.text_of(town) for town in towns] == [b"sqc8b49rny0", b"sqdtr74hyu0"]
    assert f"{geohash.distance(*towns):.4f}" == "166274.1516"


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_within_an_area_is_in_its_ranges_of_scores(seed: int) -> None:
    luck = random.Random(seed)
    found = 0
    for _ in range(200):
        center = Coordinates(luck.uniform(-170, 170), luck.uniform(-75, 75))
        radius_km = 10 ** luck.uniform(-1, 2.5)
        near_by = radius_km / 60
        circle, box = geohash.circle(center, radius_km, 1000.0), geohash.box(center, radius_km, radius_km / 3, 1000.0)
        area = luck.choice((circle, box))
        ranges = area.scores()
        assert len(ranges) == len(set(ranges)) <= 9
        for _ in range(20):
            east, north = luck.uniform(-near_by, near_by), luck.uniform(-near_by, near_by)
            place = Coordinates(center.longitude + east, center.latitude + north)
            score = geohash.score_of(place)
            if area.distance_to(geohash.place_of(score)) is not None:
                found += 1
                assert any(low <= score < high for low, high in ranges)
    assert found > 500
