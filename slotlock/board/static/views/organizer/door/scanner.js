// @ts-check
/** Reads QR codes by the camera, where the browser can: `BarcodeDetector`. */
import { h, redraw, svg } from "../../../kernel.js";
import { button, notice } from "../../../parts.js";
import { t } from "../../../text.js";

const LOOK_MS = 150;
/** A code that stays before the camera is one scan; after this time out of sight it is another. */
const FORGET_MS = 2500;
const CORNERS = "M4 24V10a6 6 0 0 1 6-6h14M76 4h14a6 6 0 0 1 6 6v14M96 76v14a6 6 0 0 1-6 6H76M24 96H10a6 6 0 0 1-6-6V76";

/** Return a camera that calls `onCode` with each code it sees. @param {(code: string) => void} onCode */
export function openScanner(onCode) {
  const Detector = /** @type {any} */ (globalThis).BarcodeDetector;
  const detector = Detector && navigator.mediaDevices ? new Detector({ formats: ["qr_code"] }) : null;
  /** @type {MediaStream | null} */
  let stream = null;
  /** Why there is no picture: a key of a text. */
  let problem = "";
  let facingMode = "environment";
  let lastCode = "";
  let seenAt = 0;
  /** @type {any} */
  let timer;

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
    if (!stream) return;
    const video = /** @type {HTMLVideoElement | null} */ (document.getElementById("camera"));
    if (video && video.srcObject !== stream) {
      video.srcObject = stream;
      await video.play().catch(() => null);
    }
    const [found] = video?.readyState ? await detector.detect(video).catch(() => []) : [];
    if (found) {
      const code = found.rawValue;
      const isNew = code !== lastCode || Date.now() - seenAt > FORGET_MS;
      lastCode = code;
      seenAt = Date.now();
      if (isNew) onCode(code);
    }
    timer = setTimeout(look, LOOK_MS);
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

  /** Return the picture with its buttons, or why there is none. */
  function render() {
    if (!detector) return notice("", "code", t("door.noCamera"));
    if (!stream) return [problem && notice("wait", "warning", t(problem)), h("p", null, button("second", t("door.startCamera"), start))];
    return [
      h(
        "div",
        { class: "camera" },
        h("video", { id: "camera", playsinline: true, muted: true, "data-own": true, "aria-label": t("door.camera") }),
        svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, svg("path", { d: CORNERS })),
        h("p", null, t("door.hold")),
      ),
      h("div", { class: "row" }, button("plain", t("door.otherCamera"), turn), button("plain", t("door.stopCamera"), stop)),
    ];
  }

  return { isOn: () => Boolean(stream), stop, render };
}
