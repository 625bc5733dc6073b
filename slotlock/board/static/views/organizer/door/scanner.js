// @ts-check
/** Reads QR codes by the camera: the browser does so where it can, with `BarcodeDetector`, and else the server. */
import { h, redraw, svg } from "../../../kernel.js";
import { button, notice } from "../../../parts.js";
import { t } from "../../../text.js";
import { post } from "../files.js";

const LOOK_MS = 150;
const ASK_MS = 700;
const ANSWER_MS = 5000;
/** The pixels a side of what the server gets: ten for each of a code that fills the corners. */
const SIDE = 360;
/** A code that stays before the camera is one scan; after this time out of sight it is another. */
const FORGET_MS = 2500;
const CORNERS = "M4 24V10a6 6 0 0 1 6-6h14M76 4h14a6 6 0 0 1 6 6v14M96 76v14a6 6 0 0 1-6 6H76M24 96H10a6 6 0 0 1-6-6V76";

/** Return a camera that calls `onCode` with each code it sees. @param {(code: string) => void} onCode */
export function openScanner(onCode) {
  const Detector = /** @type {any} */ (globalThis).BarcodeDetector;
  const detector = Detector && new Detector({ formats: ["qr_code"] });
  const read = detector ? detect : ask;
  /** @type {MediaStream | null} */
  let stream = null;
  /** Why there is no picture: a key of a text. */
  let problem = "";
  let facingMode = "environment";
  let lastCode = "";
  let seenAt = 0;
  /** @type {any} */
  let timer;
  let isNoteHidden = false;

  /** @param {HTMLVideoElement} video */
  async function detect(video) {
    const [found] = await detector.detect(video);
    return found?.rawValue;
  }

  async function start() {
    stop();
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode } });
      problem = "";
    } catch (error) {
      problem = /** @type {any} */ (error).name === "NotAllowedError" ? "door.cameraDenied" : "door.cameraMissing";
    }
    redraw();
    look();
  }

  async function look() {
    clearTimeout(timer);
    const current = stream;
    if (!current) return;
    const video = /** @type {HTMLVideoElement | null} */ (document.getElementById("camera"));
    if (video && video.srcObject !== stream) {
      video.srcObject = stream;
      await video.play().catch(() => null);
    }
    const code = video?.videoWidth && !document.hidden && await read(video).catch(() => null);
    if (stream !== current) return; // stopped meanwhile
    if (code) {
      const isNew = code !== lastCode || Date.now() - seenAt > FORGET_MS;
      lastCode = code;
      seenAt = Date.now();
      if (isNew) onCode(code);
    }
    timer = setTimeout(look, detector ? LOOK_MS : ASK_MS);
  }

  function stop() {
    clearTimeout(timer);
    for (const track of stream?.getTracks() ?? []) track.stop();
    stream = null;
    redraw();
  }

  function turn() {
    facingMode = facingMode === "user" ? "environment" : "user";
    start();
  }

  function hideNote() {
    isNoteHidden = true;
    redraw();
  }

  /** Return the picture with its buttons, or why there is none. */
  function render() {
    if (!navigator.mediaDevices) return !isNoteHidden && notice("", "code", t("door.noCamera"), button("plain", t("news.hide"), hideNote));
    if (!stream) return [problem && notice("wait", "warning", t(problem)), h("p", null, button("second", t("door.startCamera"), start))];
    return [
      h(
        "div",
        { class: "camera" },
        h("video", { id: "camera", playsinline: true, muted: true, "data-own": true, "aria-label": t("door.camera") }),
        svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, svg("path", { d: CORNERS })),
        h("p", null, t("door.hold")),
      ),
      !detector && h("p", { class: "small soft" }, t("door.byServer")),
      h("div", { class: "row" }, button("plain", t("door.otherCamera"), turn), button("plain", t("door.stopCamera"), stop)),
    ];
  }

  return { isOn: () => Boolean(stream), stop, render };
}

/** Let the server read the middle of a picture, as gray pixels. @param {HTMLVideoElement} video */
async function ask(video) {
  const { videoWidth: width, videoHeight: height } = video;
  const side = Math.min(width, height);
  const canvas = h("canvas", { width: SIDE, height: SIDE });
  const context = canvas.getContext("2d");
  context.drawImage(video, (width - side) / 2, (height - side) / 2, side, side, 0, 0, SIDE, SIDE);
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  const green = Uint8Array.from({ length: SIDE * SIDE }, (_, index) => data[4 * index + 1]);
  const { ok, text } = await post(`/check-in/frames`, new Blob([green]), "application/octet-stream", ANSWER_MS);
  return ok && JSON.parse(text).code;
}
