// Presses the button for a person who opened the link, but not in a preview or a prerendered page.
"use strict";

if (document.visibilityState === "visible" && !document.prerendering) document.getElementById("open").submit();
