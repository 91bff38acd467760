"""The story screen in NiceGUI, for comparison: the same parts, and a click that the server answers.

`python nicegui_app.py PORT TITLE OPENING ANSWER CHOICE…`, in an environment that has NiceGUI.
"""

import sys

from nicegui import ui

PORT, TITLE, OPENING, ANSWER, *CHOICES = sys.argv[1:]


@ui.page("/")
def story() -> None:
    ui.dark_mode(True)
    with ui.header():
        ui.label(TITLE).classes("text-lg")
    with ui.left_drawer().props("mini"):
        for icon, name in (
            ("menu_book", "Narrative"),
            ("build", "Tools"),
            ("image", "Assets"),
            ("account_tree", "State"),
        ):
            with ui.column().classes("items-center"):
                ui.icon(icon)
                ui.label(name)
    with ui.column().classes("w-full max-w-2xl mx-auto"):
        told = ui.column()
        with told:
            ui.markdown(OPENING)
        choices = ui.column()

        def choose(text: str) -> None:
            choices.clear()
            with told:
                ui.label(text)
                ui.markdown(ANSWER)

        with choices:
            for text in CHOICES:
                ui.button(text, on_click=lambda text=text: choose(text))
    with ui.footer():
        ui.textarea("What do you do?").classes("grow")
        ui.button("Send")


ui.run(port=int(PORT), host="127.0.0.1", show=False, reload=False, title=TITLE)
