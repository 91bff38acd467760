"""The players of a shared database: their tokens and sign-ins, whose a session is, and with whom it is shared.

Secrets are kept as hashes. A player is a name that the operator gave, or a person known to an OpenID Connect provider;
both are an id here. All times are the database's.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from narratoria.errors import JournalError
from narratoria.store.writer import Database

if TYPE_CHECKING:
    from narratoria.store.postgres import PostgresStore

Role = Literal["guest", "player", "author", "operator"]
ROLES: Final[tuple[Role, ...]] = ("guest", "player", "author", "operator")
"""Each may do what those before it may. A guest has no account, only links."""
Right = Literal["read", "play", "own"]
RIGHTS: Final[tuple[Right, ...]] = ("read", "play", "own")
"""Each includes those before it."""
MOST_SHARES: Final = 100
"""Links to one session at a time."""
MOST_JOINED: Final = 1_000
"""Players who may come by one link."""

TABLES: Final = (
    "CREATE TABLE owners (session TEXT PRIMARY KEY, player TEXT NOT NULL)",
    "CREATE INDEX owners_by_player ON owners (player)",
    # A token signs in by itself, each time it is sent, or once, for a browser that gets a cookie for it.
    """CREATE TABLE tokens (
        hash TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, player TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL,
        made TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), expires TIMESTAMPTZ, once BOOLEAN NOT NULL DEFAULT FALSE,
        source TEXT REFERENCES tokens (hash) ON DELETE CASCADE)""",
    "CREATE INDEX tokens_by_source ON tokens (source)",
    """CREATE TABLE sign_ins (
        hash TEXT PRIMARY KEY, player TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL,
        expires TIMESTAMPTZ NOT NULL, source TEXT REFERENCES tokens (hash) ON DELETE CASCADE)""",
    "CREATE INDEX sign_ins_by_source ON sign_ins (source)",
    """CREATE TABLE shares (
        id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, session TEXT NOT NULL, access TEXT NOT NULL,
        made TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())""",
    "CREATE INDEX shares_by_session ON shares (session)",
    """CREATE TABLE joined (
        share TEXT NOT NULL REFERENCES shares (id) ON DELETE CASCADE, player TEXT NOT NULL,
        PRIMARY KEY (share, player))""",
    "CREATE INDEX joined_by_player ON joined (player)",
)
_LATER: Final = "clock_timestamp() + make_interval(secs => ?::double precision)"  # never, for NULL
_VALID: Final = "(expires IS NULL OR expires > clock_timestamp())"
_WHO: Final = f"""SELECT hash, player, name, role, source FROM sign_ins WHERE hash = ANY(?) AND {_VALID}
    UNION ALL SELECT hash, player, name, role, hash FROM tokens WHERE hash = ANY(?) AND NOT once AND {_VALID}"""  # noqa: S608
_TOKEN: Final = f"""INSERT INTO tokens (hash, id, player, name, role, once, source, expires)
    VALUES (?, ?, ?, ?, ?, ?, ?, {_LATER})"""  # noqa: S608 - our own words
_SPEND: Final = """DELETE FROM tokens WHERE hash = ? AND once
    RETURNING player, name, role, source, expires > clock_timestamp()"""
_SIGN_IN: Final = f"""INSERT INTO sign_ins (hash, player, name, role, source, expires) VALUES (?, ?, ?, ?, ?, least(
    {_LATER}, (SELECT expires FROM tokens WHERE hash = ?)))"""  # noqa: S608 - our own words
_RIGHTS: Final = """WITH asked (player, session) AS (SELECT * FROM unnest(?::text[], ?::text[]))
    SELECT a.player, a.session, 'own' FROM asked a JOIN owners o ON o.session = a.session AND o.player = a.player
    UNION ALL SELECT a.player, a.session, s.access FROM asked a JOIN shares s ON s.session = a.session
    JOIN joined j ON j.share = s.id AND j.player = a.player"""
_SESSIONS: Final = """SELECT session FROM owners WHERE player = ?
    UNION SELECT s.session FROM shares s JOIN joined j ON j.share = s.id WHERE j.player = ?"""
_JOINED: Final = """SELECT id, (SELECT count(*) FROM joined j WHERE j.share = s.id),
    EXISTS (SELECT 1 FROM joined j WHERE j.share = s.id AND j.player = ?) FROM shares s WHERE hash = ?"""
# A branch has the pictures of the past that it shares.
_SEES: Final = f"""WITH RECURSIVE seen (key, parent) AS (
    SELECT key, parent FROM sessions WHERE id IN ({_SESSIONS})
    UNION SELECT p.key, p.parent FROM sessions p JOIN seen ON p.key = seen.parent)
    SELECT 1 FROM assets a JOIN seen ON a.session = seen.key WHERE a.hash = ? LIMIT 1"""  # noqa: S608 - our own words


class Player(NamedTuple):
    """The sender of a request. `source` is the hash of the token that it goes back to: it ends with that."""

    id: str
    name: str
    role: Role
    source: str | None = None


class TokenCard(NamedTuple):
    """A token as it is listed: never the token itself."""

    id: str
    name: str
    role: str
    made: str
    expires: str | None


class Share(NamedTuple):
    """A link to a session as it is listed: never the secret in it."""

    id: str
    access: Right


class Players:
    """The tables. Methods block; a server calls them in a thread."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def _write(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._store.writer.run(lambda database: database.execute(sql, values))

    # --- tokens --------------------------------------------------------------------------------------------

    def make_token(self, name: str, role: Role, seconds: float | None = None) -> str:
        """Return a new token of a player, who is known by the name; nobody can read it again."""
        return self._made(Player(f"name:{name}", name, role), seconds, once=False)

    def hand_over(self, player: Player, seconds: float) -> str:
        """Return a token that signs one more browser of a player in."""
        return self._made(player, seconds, once=True)

    def _made(self, player: Player, seconds: float | None, *, once: bool) -> str:
        token = secrets.token_urlsafe(24)
        values = (secret_hash(token), secrets.token_hex(4), player.id, player.name, player.role)
        self._write(_TOKEN, *values, once, player.source, seconds)
        return token

    def tokens(self) -> list[TokenCard]:
        """The tokens that players have, the newest first, those that have ended too."""
        day = "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
        rows = self._store.query(
            f"SELECT id, name, role, {day.format('made')}, {day.format('expires')} FROM tokens "  # noqa: S608
            "WHERE NOT once ORDER BY tokens.made DESC"
        )
        return [TokenCard(*row) for row in rows]

    def any_token(self) -> bool:
        return bool(self._store.query(f"SELECT 1 FROM tokens WHERE NOT once AND {_VALID} LIMIT 1"))  # noqa: S608

    def revoke_token(self, token_id: str) -> None:
        """Forget a token, and end every sign-in that goes back to it."""
        if not self._write("DELETE FROM tokens WHERE id = ? AND NOT once RETURNING 1", token_id):
            raise JournalError(f"there is no token {token_id!r}; `narratoria serve token list` shows the ids")

    # --- sign-ins ------------------------------------------------------------------------------------------

    def who(self, hashes: Sequence[str]) -> dict[str, Player]:
        """Return whose these secrets are: the cookies of browsers, and the tokens of programs."""
        rows = self._store.query(_WHO, (list(hashes), list(hashes)))
        return {row[0]: Player(*row[1:]) for row in rows}

    def exchange(self, token: str, seconds: float) -> str | None:
        """Return the cookie for a token; None for one that is not good."""
        mark = secret_hash(token)
        rows = self._write(_SPEND, mark)
        if rows:
            return self.sign_in(Player(*rows[0][:4]), seconds) if rows[0][4] else None
        found = self.who([mark]).get(mark)
        if found is not None:
            return self.sign_in(found, seconds) if found.source == mark else None
        guest = Player(f"guest:{secrets.token_hex(8)}", "guest", "guest")
        return self.sign_in(guest, seconds) if self.join(token, guest.id) else None

    def spend(self, token: str) -> bool:
        """Use a token up that works once; tell if there was one."""
        return any(row[4] for row in self._write(_SPEND, secret_hash(token)))

    def sign_in(self, player: Player, seconds: float) -> str:
        """Return a new cookie of a player. It ends with the token it goes back to, if there is one."""
        secret = secrets.token_urlsafe(32)
        values = (secret_hash(secret), player.id, player.name, player.role, player.source)
        self._write(_SIGN_IN, *values, seconds, player.source)
        return secret

    def sign_out(self, mark: str) -> None:
        self._write("DELETE FROM sign_ins WHERE hash = ?", mark)

    def sweep(self) -> None:
        """Remove what has expired. A player's token stays for a month, to be seen in the list."""
        self._write("DELETE FROM sign_ins WHERE expires < clock_timestamp()")
        self._write(
            "DELETE FROM tokens WHERE expires < clock_timestamp() "
            "AND (once OR expires < clock_timestamp() - interval '30 days')"
        )
        self._write(
            "DELETE FROM joined j WHERE player LIKE 'guest:%%' "
            "AND NOT EXISTS (SELECT 1 FROM sign_ins s WHERE s.player = j.player)"
        )

    # --- sessions ------------------------------------------------------------------------------------------

    def give(self, database: Database, session_id: str, player: str | None) -> None:
        """Make a session private to a player, or to nobody. Links to an earlier one of that id are gone."""
        database.execute("DELETE FROM shares WHERE session = ?", (session_id,))
        database.execute("DELETE FROM owners WHERE session = ?", (session_id,))
        if player is not None:
            database.execute("INSERT INTO owners (session, player) VALUES (?, ?)", (session_id, player))

    def rights(self, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Right]:
        """Return the best right of each player to a session; pairs without one are left out."""
        rows = self._store.query(
            _RIGHTS, ([player for player, _ in asked], [session for _, session in asked])
        )
        found: dict[tuple[str, str], Right] = {}
        for player, session, right in sorted(rows, key=lambda row: RIGHTS.index(row[2])):
            found[player, session] = right
        return found

    def sessions(self, player: str) -> list[str]:
        """The sessions that a player has or was given a link to."""
        return [row[0] for row in self._store.query(_SESSIONS, (player, player))]

    def share(self, session_id: str, access: Right) -> tuple[str, str]:
        """Return the id and the secret of a new link to a session."""
        if len(self.shares(session_id)) >= MOST_SHARES:
            raise JournalError(f"a session has at most {MOST_SHARES} links; revoke one first")
        share, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
        values = (share, secret_hash(secret), session_id, access)
        self._write("INSERT INTO shares (id, hash, session, access) VALUES (?, ?, ?, ?)", *values)
        return share, secret

    def shares(self, session_id: str) -> list[Share]:
        """The links to a session, the newest first."""
        sql = "SELECT id, access FROM shares WHERE session = ? ORDER BY made DESC"
        return [Share(*row) for row in self._store.query(sql, (session_id,))]

    def unshare(self, session_id: str, share: str) -> bool:
        """Revoke a link, for everybody who came by it; tell if there was one."""
        sql = "DELETE FROM shares WHERE session = ? AND id = ? RETURNING 1"
        return bool(self._write(sql, session_id, share))

    def join(self, secret: str, player: str) -> bool:
        """Let a player use a link from now on; tell if it is one, and not too many have used it."""
        rows = self._store.query(_JOINED, (player, secret_hash(secret)))
        if not rows or (rows[0][1] >= MOST_JOINED and not rows[0][2]):
            return False
        joining = (
            "INSERT INTO joined (share, player) SELECT id, ? FROM shares WHERE id = ? ON CONFLICT DO NOTHING"
        )
        self._write(joining, player, rows[0][0])
        return True

    def sees(self, player: str, asset: str) -> bool:
        """Tell if an asset belongs to a session that a player may read."""
        return bool(self._store.query(_SEES, (player, player, asset)))


def secret_hash(secret: str) -> str:
    """Return the hash of a secret. It has too many bits to be guessed, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
