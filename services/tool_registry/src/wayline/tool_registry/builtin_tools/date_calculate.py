"""The built-in tool `date_calculate`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from wayline.tool_registry.calculation.date_questions import DateQuestion, answer
from wayline.tool_registry.calculation.dates import Unit, Weekday
from wayline.tool_registry.calculation.local_times import CannotCalculate

ZONES_MAX = 10
HOLIDAYS_MAX = 100

Operation = Annotated[
    Literal["add", "difference", "period", "weekday", "zones", "describe", "holidays"],
    Field(
        description="add: date plus the given years … business_days (below zero: before it). "
        "difference: from date to end_date; of times in whole days and in the hours that pass. "
        "period: first and last day of the week, month, quarter or year of date; offset 1 is the next one. "
        "weekday: the nth weekday after date or, with unit, of that period (-1: its last). "
        "zones: the time of date in other timezones. describe: weekday, week number, holiday. "
        "holidays: those from date to end_date."
    ),
]
Date = Annotated[
    str,
    Field(
        max_length=40,
        description="now, today, tomorrow, yesterday, 2026-03-31, 2026-03-31T14:30 or 2026-03-31T14:30+02:00.",
    ),
]
EndDate = Annotated[str | None, Field(max_length=40, description="In the same forms.")]
Timezone = Annotated[str, Field(max_length=60, description="IANA name; of times without an offset, and today.")]
Timezones = Annotated[list[str] | None, Field(max_length=ZONES_MAX, description="For zones.")]
Amount = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
PeriodUnit = Annotated[Unit | None, Field(description="For period and weekday.")]
Offset = Annotated[int, Field(ge=-10_000, le=10_000, description="Periods on from that of date: 1 is the next.")]
WantedWeekday = Annotated[Weekday | None, Field(description="For weekday.")]
Nth = Annotated[int, Field(ge=-53, le=53, description="For weekday: 1 the first, -1 the last or the one before.")]
Country = Annotated[str | None, Field(max_length=10, description="ISO code whose holidays count, such as CH.")]
Region = Annotated[
    str | None,
    Field(max_length=60, description="Of the country, such as ZH or England; without it no regional holiday counts."),
]
ExtraHolidays = Annotated[
    list[str] | None, Field(max_length=HOLIDAYS_MAX, description="Further days off, such as 2026-12-24.")
]


async def date_calculate(
    *,
    operation: Operation,
    date: Date = "now",
    end_date: EndDate = None,
    timezone: Timezone = "UTC",
    to_timezones: Timezones = None,
    years: Amount = 0,
    months: Amount = 0,
    weeks: Amount = 0,
    days: Amount = 0,
    business_days: Amount = 0,
    hours: Amount = 0,
    minutes: Amount = 0,
    unit: PeriodUnit = None,
    offset: Offset = 0,
    weekday: WantedWeekday = None,
    nth: Nth = 1,
    country: Country = None,
    region: Region = None,
    extra_holidays: ExtraHolidays = None,
) -> str:
    """Calculate with dates and times: add, compare, ends of months, weekdays, time zones, business days, holidays."""
    from mcp.server.mcpserver.exceptions import ToolError

    question = DateQuestion(
        operation=operation,
        date=date,
        end_date=end_date,
        timezone=timezone,
        to_timezones=to_timezones or [],
        years=years,
        months=months,
        weeks=weeks,
        days=days,
        business_days=business_days,
        hours=hours,
        minutes=minutes,
        unit=unit,
        offset=offset,
        weekday=weekday,
        nth=nth,
        country=country,
        region=region,
        extra_holidays=extra_holidays or [],
    )
    try:
        # On a thread: the first holidays of a country take a while to load, and many business days to count.
        found = await asyncio.to_thread(answer, question, now=datetime.now(UTC))
    except CannotCalculate as error:
        raise ToolError(str(error)) from None
    return json.dumps(found, ensure_ascii=False)
