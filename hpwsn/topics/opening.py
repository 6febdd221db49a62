"""Opens the topic directory that a URL names: a TOML file, or LDAP; without a URL, DATA/topics.toml.

Only builders and commands call this module. Everything else uses the interface in
hpwsn.topics.directory.directory.
"""

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hpwsn.settings import TopicsSettings
from hpwsn.topics.directory.directory import Access, Directory, TopicDirectoryError
from hpwsn.topics.directory.entry_directory import EntryDirectory, EntryKind

DEFAULT_FILE = "topics.toml"
"""The topic file in the data directory of a node without `topics.url`."""


def access_from(topics: TopicsSettings) -> Access:
    """Return the access to a remote directory from the settings."""
    return Access(
        bind_dn=topics.bind_dn,
        password_file=topics.password_file,
        start_tls=topics.start_tls,
        ca_file=topics.ca_file,
        timeout=topics.timeout,
        page_size=topics.page_size,
        poll=topics.poll,
        retry_max=topics.retry_max,
    )


def edit_access_from(topics: TopicsSettings) -> Access:
    """Return the access with which the node edits a remote directory."""
    return replace(
        access_from(topics),
        bind_dn=topics.edit_bind_dn,
        password_file=topics.edit_password_file,
        editing=True,
    )


def open_directory(url: str, access: Access | None = None, data: Path | None = None) -> Directory:
    """Return the directory that a URL or a path names, without reading it.

    An empty URL names `topics.toml` in the data directory, which need not exist.
    """
    if not url and data is not None:
        return _open_file(url, data / DEFAULT_FILE, optional=True)
    scheme = urlsplit(url).scheme.lower() if "://" in url or url.startswith("file:") else ""
    if scheme in ("ldap", "ldaps"):
        return _open_ldap(url, access or Access())
    if scheme not in ("", "file"):
        raise TopicDirectoryError(
            f"topic directory {url}: unknown scheme {scheme!r}; name a path, or a file:, ldap: or ldaps: URL"
        )
    return _open_file(url, _file_path(url) if scheme else Path(url))


def open_entries(topics: TopicsSettings, base: str, kind: EntryKind) -> EntryDirectory:
    """Return entries of another kind on the server of the topics, without reading them.

    They are written as `edit_bind_dn`, if there is one.
    """
    if urlsplit(topics.url).scheme.lower() not in ("ldap", "ldaps"):
        raise TopicDirectoryError(
            f"topics.url is {topics.url!r}, which is no LDAP server; set it to ldap://host:port/base"
        )
    _need_python_ldap()
    from hpwsn.topics.ldap.ldap_entries import LdapEntries

    return LdapEntries(topics.url, base, access_from(topics), edit_access_from(topics), kind)


def _open_file(url: str, path: Path, optional: bool = False) -> Directory:
    from hpwsn.topics.directory.topic_file import FileDirectory

    if path.suffix.lower() != ".toml":
        raise TopicDirectoryError(
            f"topic directory {url!r}: the file name must end in .toml; write one such as topics.toml"
        )
    return FileDirectory(path, optional)


def _file_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise TopicDirectoryError(
            f"topic directory {url}: a file URL cannot name the host {parts.netloc!r}; write file:///absolute/path.toml"
        )
    return Path(unquote(parts.path))


def _open_ldap(url: str, access: Access) -> Directory:
    _need_python_ldap()
    from hpwsn.topics.ldap.ldap_directory import LdapDirectory

    return LdapDirectory(url, access)


def _need_python_ldap() -> None:
    try:
        import hpwsn.topics.ldap.ldap_connection  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "ldap":
            raise
        raise TopicDirectoryError(
            "a topic directory in LDAP needs python-ldap: in the checkout, pip install ./client '.[ldap]'"
        ) from None
