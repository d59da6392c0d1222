"""`python -m migrations`: brings the database named by DATABASE_URL to the newest schema.

Where DATABASE_URL_ORDERS, …_INVENTORY, … are set, it gives the roles that they name the rights of their party.
"""

import sys

from domain.errors import DatabaseUnavailable
from migrations import migrate
from migrations.roles import RoleError
from runtime.settings import SettingsError, load_settings


def main() -> int:
    """Exit code 0 done, 1 no database, 2 a wrong or missing setting."""
    try:
        settings = load_settings()
        migrate(settings.need(settings.database_url, "DATABASE_URL"), settings.party_urls())
    except (SettingsError, RoleError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except DatabaseUnavailable:
        sys.stderr.write("the database at DATABASE_URL does not answer\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
