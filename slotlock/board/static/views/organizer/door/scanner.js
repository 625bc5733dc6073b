// @ts-check
/** Reads QR codes by the camera, where the browser can: `BarcodeDetector`. */
import { h, redraw, svg } from "../../../kernel.js";
import { button, notice } from "../../../parts.js";
import { t } from "../../../text.js";

const LOOK_MS = 150;
/** A code that stays before the camera is one scan; after this time out of sight it is another. */
const FORGET_MS = 2500;
const CORNERS = "M4 24V10a6 6 0 0 1 6-6h14M76 4h14a6 6 0 0 1 6 6v14M96 76v14a6 6 0 0 1-6 6H76M24 96H10a6 6 0 0 1-6-6V76";

/** A camera that calls `onCode` with each code it sees. */
export class Scanner {
  /** @type {MediaStream | null} */
  stream = null;
  /** Why there is no picture: a key of a text. */
  problem = "";
  facing = "environment";
  lastCode = "";
  seenAt = 0;

  /** @param {(code: string) => void} onCode */
  constructor(onCode) {
    this.onCode = onCode;
    const Detector = /** @type {any} */ (globalThis).BarcodeDetector;
    this.detector = Detector && navigator.mediaDevices ? new Detector({ formats: ["qr_code"] }) : null;
  }

  async start() {
    this.stop();
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: this.facing } });
      this.problem = "";
    } catch (error) {
      this.problem = /** @type {any} */ (error).name === "NotAllowedError" ? "door.cameraDenied" : "door.cameraMissing";
    }
    redraw();
    this.look();
  }

  async look() {
    clearTimeout(this.timer);
    if (!this.stream) return;
    const video = /** @type {HTMLVideoElement | null} */ (document.getElementById("camera"));
    if (video && video.srcObject !== this.stream) {
      video.srcObject = this.stream;
      await video.play().catch(() => null);
    }
    const codes = video?.readyState ? await this.detector.detect(video).catch(() => []) : [];
    const code = codes[0]?.rawValue ?? "";
    if (code && (code !== this.lastCode || Date.now() - this.seenAt > FORGET_MS)) this.onCode(code);
    if (code) {
      this.lastCode = code;
      this.seenAt = Date.now();
    }
    this.timer = setTimeout(() => this.look(), LOOK_MS);
  }

  stop() {
    clearTimeout(this.timer);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
  }

  turn() {
    this.facing = this.facing === "environment" ? "user" : "environment";
    this.start();
  }

  /** Return the picture with its buttons, or why there is none. */
  render() {
    if (!this.detector) return [notice("", "code", t("door.noCamera"))];
    if (!this.stream) {
      return [this.problem && notice("wait", "warning", t(this.problem)), h("p", null, button("second", t("door.startCamera"), () => this.start()))];
    }
    return [
      h(
        "div",
        { class: "camera" },
        h("video", { id: "camera", playsinline: true, muted: true, "data-own": true, "aria-label": t("door.camera") }),
        svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, svg("path", { d: CORNERS })),
        h("p", null, t("door.hold")),
      ),
      h("div", { class: "row" }, button("plain", t("door.otherCamera"), () => this.turn()), button("plain", t("door.stopCamera"), () => {
        this.stop();
        redraw();
      })),
    ];
  }
}
