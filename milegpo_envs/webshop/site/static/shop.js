// A picture that cannot be had gives way to the drawing behind it.
"use strict";
const drop = (picture) => picture.remove();
document.addEventListener("error", (event) => {
  if (event.target instanceof HTMLImageElement) drop(event.target);
}, true);
for (const picture of document.images) {
  if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc) drop(picture);
}
