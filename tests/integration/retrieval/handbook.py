"""A small handbook of an invented company, questions that it answers, and questions near it that it does not answer."""

DOCUMENTS = {
    "heron.md": """# Heron pump

The Heron is our smallest pump. It moves 40 litres a minute and weighs 12 kilograms.

## Warranty

Every Heron carries a warranty of three years from the day of delivery.

## Maintenance

Replace the seal of a Heron every 2,000 hours of operation. The filter needs cleaning each month.
""",
    "osprey.md": """# Osprey pump

The Osprey is made for dirty water. It moves 180 litres a minute and weighs 55 kilograms.

## Warranty

The warranty of the Osprey lasts five years; wear of the impeller is not covered.

## Starting

Fill the housing with water before the first start. An Osprey that runs dry is damaged within four minutes.
""",
    "kingfisher.md": """# Kingfisher controller

The Kingfisher switches up to six pumps by the level of the water. It speaks Modbus over RS-485.

## Alarms

A red light means that a pump is blocked. A yellow light means that the sensor is dirty.

## Resetting

Hold the two outer buttons for ten seconds to restore the settings of the factory.
""",
    "returns.md": """# Returning goods

Unused goods may be returned within 30 days. Write to returns@brightwater.example for a number first.

Goods without a return number are sent back at the sender's expense. Refunds reach the original card within a week.

Custom pipes cannot be returned, since they are cut to measure.
""",
    "shipping.md": """# Shipping

Orders placed before noon leave the warehouse in Bergen the same day. Delivery inside Norway takes two days.

Abroad, delivery takes five to eight days. Customs duties are paid by the receiver.

Parcels above 30 kilograms travel on a pallet and need a forklift at the destination.
""",
    "travel.md": """# Travel policy

Flights are booked through the travel desk. Economy class is the rule; business class needs the approval of a director.

Hotels may cost up to 1,600 kroner a night. In Oslo the limit is 1,900 kroner.

Receipts are handed in within fourteen days after the journey, or the expense is not paid back.
""",
    "holidays.md": """# Leave

Full-time employees have 25 days of paid leave a year. Unused days lapse on the last day of March of the next year.

Parents share 49 weeks of parental leave at full pay.

A sick note is needed from the fourth day of absence.
""",
    "security.md": """# Security

Passwords have at least 14 characters and are kept in the password manager. Nobody shares them by mail.

A lost laptop is reported to the help desk within one hour, at any time of the day.

Visitors wear a green badge and are accompanied at all times. Employees wear a blue one.
""",
    "incidents.md": """# Incidents

The engineer on call acknowledges a page within five minutes. After fifteen minutes it goes to the team's lead.

An incident of severity 1 is announced on the status page within twenty minutes.

A review without blame follows within five working days. Its author is the incident's commander.
""",
    "deploys.md": """# Deploys

Services are deployed from the main branch between 9:00 and 15:00. On Fridays nothing is deployed after noon.

A deploy is rolled back with `ship rollback SERVICE`. Migrations of the database run before the new version starts.

Feature flags older than ninety days are removed.
""",
    "billing.md": """# Invoices

Invoices are payable within 21 days. A reminder is sent after a week, the second one with a fee of 70 kroner.

Customers outside Norway pay without value added tax when they give their registration number.

Credit notes are issued by Ingrid Solheim in the finance department.
""",
    "canteen.md": """# Canteen

Lunch is served from 11:00 to 13:30. A meal costs 62 kroner, and soup is free on Thursdays.

Allergies are told to the kitchen a day ahead. The coffee machine on the third floor takes no coins.
""",
}

ANSWERED = [
    ("How long is the warranty of the Heron?", "heron.md", "three years"),
    ("How long is the warranty on an Osprey pump?", "osprey.md", "five years"),
    ("How much does the Heron weigh?", "heron.md", "12 kilograms"),
    ("How many litres a minute does the Osprey move?", "osprey.md", "180 litres"),
    ("How often must the seal of a Heron be replaced?", "heron.md", "2,000 hours"),
    ("What happens to an Osprey that runs dry?", "osprey.md", "four minutes"),
    ("What do I do before the first start of the Osprey?", "osprey.md", "Fill the housing"),
    ("What does a yellow light on the Kingfisher mean?", "kingfisher.md", "sensor is dirty"),
    ("How do I restore the factory settings of the Kingfisher?", "kingfisher.md", "outer buttons"),
    ("Which protocol does the Kingfisher speak?", "kingfisher.md", "Modbus"),
    ("Within how many days can unused goods be returned?", "returns.md", "30 days"),
    ("Can custom pipes be returned?", "returns.md", "cannot be returned"),
    ("When do refunds reach the card?", "returns.md", "within a week"),
    ("How long does delivery inside Norway take?", "shipping.md", "two days"),
    ("Who pays customs duties?", "shipping.md", "receiver"),
    ("Which parcels need a forklift?", "shipping.md", "30 kilograms"),
    ("What may a hotel in Oslo cost a night?", "travel.md", "1,900 kroner"),
    ("Who approves business class?", "travel.md", "director"),
    ("When must receipts be handed in?", "travel.md", "fourteen days"),
    ("How many days of paid leave do employees have?", "holidays.md", "25 days"),
    ("When do unused days of leave lapse?", "holidays.md", "March"),
    ("From which day is a sick note needed?", "holidays.md", "fourth day"),
    ("How many characters must passwords have?", "security.md", "14 characters"),
    ("Where do I report a lost laptop?", "security.md", "help desk"),
    ("What colour is the badge of visitors?", "security.md", "green badge"),
    ("How soon is a page acknowledged by the engineer on call?", "incidents.md", "five minutes"),
    ("How is a deploy rolled back?", "deploys.md", "ship rollback"),
    ("When are invoices payable?", "billing.md", "21 days"),
    ("Who issues credit notes?", "billing.md", "Ingrid Solheim"),
    ("What does a meal in the canteen cost?", "canteen.md", "62 kroner"),
]
"""Question, the document that answers it, words of the answer."""

UNANSWERED = [
    "How long is the warranty of the Pelican?",
    "How much does the Cormorant pump weigh?",
    "How long is the warranty of the Kingfisher?",
    "What does a yellow light on the Heron mean?",
    "What may a hotel in Stockholm cost a night?",
    "How long does delivery to Svalbard take?",
    "Who approves business class for Ingrid Solheim?",
    "How many days of paid leave do employees in Denmark have?",
    "What is the price of an Osprey?",
    "Which colours is the Heron sold in?",
    "How do I install the printer driver?",
    "What is the capital of Australia?",
    "How is the pension plan funded?",
    "Who founded the company?",
    "What is the wifi password for guests?",
]
