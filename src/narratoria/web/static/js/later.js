/** What a story can begin without: every view but the story itself, the settings and the library. It comes when there is time. */
import { Ambience } from "./ambience.js";
import { AssetsView } from "./assets.js";
import { LibraryView } from "./library.js";
import { MemoryView } from "./memory.js";
import { WorldPanel } from "./panel.js";
import { StorySearch } from "./search.js";
import { openSettings } from "./settings.js";
import { StateView } from "./stateview.js";
import { ToolsView } from "./tools.js";
import { registerWorker } from "./worker.js";

export { Ambience, AssetsView, LibraryView, MemoryView, openSettings, registerWorker, StateView, StorySearch, ToolsView, WorldPanel };
