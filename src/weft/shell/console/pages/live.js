"use strict";
// The first script: it opens the stream before the page is there. What comes meanwhile waits for `console.js`.

const stream = new EventSource("live"), early = [];
stream.onmessage = (event) => early.push(event);
