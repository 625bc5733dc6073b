// @ts-check
/** Sounds and vibration that differ by verdict, so that nobody has to look at the screen. */
import { local } from "../../../storage.js";

const STORED_SOUND = "slotlock.door.quiet";
/** Tones of each verdict as [frequency in Hz, start in ms, length in ms], and its vibration. */
const SIGNALS = /** @type {Record<string, {tones: number[][], vibration: number[]}>} */ ({
  yours: { tones: [[880, 0, 90], [1320, 90, 140]], vibration: [60] },
  wait: { tones: [[660, 0, 110], [660, 170, 110]], vibration: [80, 80, 80] },
  stop: { tones: [[220, 0, 450]], vibration: [400] },
});
/** @type {AudioContext | null} */
let audio = null;

/** Whether verdicts are heard and felt. */
export function isLoud() {
  return local.get(STORED_SOUND) === null;
}

/** @param {boolean} loud */
export function setLoud(loud) {
  if (loud) local.remove(STORED_SOUND);
  else local.set(STORED_SOUND, "1");
}

/** Signal a verdict. @param {string} kind */
export function signal(kind) {
  if (!isLoud()) return;
  const { tones, vibration } = SIGNALS[kind];
  navigator.vibrate?.(vibration);
  const context = (audio ??= new AudioContext());
  context.resume().catch(() => null);
  for (const [frequency, startMs, lengthMs] of tones) {
    const start = context.currentTime + startMs / 1000;
    const end = start + lengthMs / 1000;
    const tone = new OscillatorNode(context, { frequency, type: kind === "stop" ? "sawtooth" : "sine" });
    const volume = new GainNode(context, { gain: 0.25 });
    volume.gain.setTargetAtTime(0, end - 0.03, 0.01); // no click at the end
    tone.connect(volume).connect(context.destination);
    tone.start(start);
    tone.stop(end);
  }
}
