"""Which triggers of a SQLite file outlive a change of its tables: all that still fit, as they were written."""

from __future__ import annotations

from contextlib import closing

import pytest
from django.db import DatabaseError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import isolate_apps

from tests.durableweb.sqlite_writer import connect

pytestmark = pytest.mark.sqlite_only

TRIGGERS = {
    # of the table from which a column goes
    "book_title": "CREATE TRIGGER book_title BEFORE UPDATE OF title ON book BEGIN SELECT RAISE(ABORT, 'kept'); END",
    "book_pages": "CREATE TRIGGER book_pages BEFORE UPDATE ON book WHEN NEW.pages < OLD.pages"
    " BEGIN SELECT RAISE(ABORT, 'kept'); END",
    "book_shelf": 'CREATE TRIGGER "book_shelf" AFTER UPDATE OF "shelf_id" ON "book"'
    ' BEGIN UPDATE shelf SET id = id WHERE id = NEW."shelf_id"; END',
    # of another table: that names both, one of them, or neither
    "shelf_counts": "CREATE TRIGGER shelf_counts AFTER DELETE ON shelf"
    " BEGIN UPDATE book SET pages = 0 WHERE title = 'lost'; END",
    "shelf_moved": "CREATE TRIGGER shelf_moved AFTER UPDATE ON shelf"
    " BEGIN UPDATE book SET title = 'moved' WHERE shelf_id = NEW.id; END",
    "shelf_alone": "CREATE TRIGGER shelf_alone BEFORE INSERT ON shelf WHEN NEW.pages < 0"
    " BEGIN SELECT RAISE(ABORT, 'kept'); END",
}


@pytest.fixture
def house(tmp_path, django_db_blocker):
    """A file with shelves, books and their triggers: (connection, the models)."""
    with isolate_apps("runs"), django_db_blocker.unblock():

        class Shelf(models.Model):
            pages = models.IntegerField(default=0)

            class Meta:
                app_label, db_table = "runs", "shelf"

        class Book(models.Model):
            title = models.TextField()
            pages = models.IntegerField(default=0)
            shelf = models.ForeignKey(Shelf, models.CASCADE)

            class Meta:
                app_label, db_table = "runs", "book"

        with closing(connect(str(tmp_path / "house.sqlite3"))) as connection:
            connection.alias = "house"
            connections["house"] = connection  # where the editor's transaction looks for it
            with connection.schema_editor() as editor:
                editor.create_model(Shelf)
                editor.create_model(Book)
            with connection.cursor() as cursor:
                for statement in TRIGGERS.values():
                    cursor.execute(statement)
                cursor.execute("INSERT INTO shelf (id, pages) VALUES (1, 0)")
                cursor.execute("INSERT INTO book (id, title, pages, shelf_id) VALUES (1, 'a', 3, 1)")
            yield connection, Shelf, Book
            del connections["house"]


def stored(connection: BaseDatabaseWrapper) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return dict(cursor.fetchall())


def left(*gone: str) -> dict[str, str]:
    return {name: made for name, made in TRIGGERS.items() if name not in gone}


@pytest.mark.parametrize(
    ("column", "gone"),
    [
        ("pages", ["book_pages", "shelf_counts"]),
        ("shelf", ["book_shelf", "shelf_moved"]),
        ("title", ["book_title", "shelf_counts", "shelf_moved"]),
    ],
)
def test_with_a_column_go_the_triggers_that_name_it(house, column, gone):
    """Whether SQLite can drop the column or the table is made anew; what is left works."""
    connection, _shelf, book = house
    with connection.schema_editor() as editor:
        editor.remove_field(book, book._meta.get_field(column))
    assert stored(connection) == left(*gone)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM book")
        cursor.execute("UPDATE shelf SET pages = 2")
        cursor.execute("DELETE FROM shelf")


def test_with_a_table_go_the_triggers_that_name_it(house):
    connection, _shelf, book = house
    with connection.schema_editor() as editor:
        editor.delete_model(book)
    assert stored(connection) == {"shelf_alone": TRIGGERS["shelf_alone"]}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shelf SET pages = 2")
        cursor.execute("DELETE FROM shelf")


@pytest.mark.parametrize("column", ["pages", "shelf"])
def test_a_change_that_fails_leaves_all_triggers(house, column):
    connection, _shelf, book = house
    with pytest.raises(DatabaseError, match="no such table: nowhere"), connection.schema_editor() as editor:
        editor.remove_field(book, book._meta.get_field(column))
        editor.execute("INSERT INTO nowhere VALUES (1)")
    assert stored(connection) == TRIGGERS
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match="kept"):
        cursor.execute("UPDATE book SET pages = 1")


def test_an_added_and_an_altered_column_leave_all_triggers(house):
    connection, shelf, book = house
    with isolate_apps("runs"), connection.schema_editor() as editor:
        wide = models.BigIntegerField(default=0)
        wide.set_attributes_from_name("pages")
        editor.alter_field(book, book._meta.get_field("pages"), wide)
        more = models.ForeignKey(shelf, models.CASCADE, null=True, related_name="+")
        more.set_attributes_from_name("other")
        more.model = book
        editor.add_field(book, more)
    assert stored(connection) == TRIGGERS
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match="kept"):
        cursor.execute("UPDATE book SET pages = 1")
