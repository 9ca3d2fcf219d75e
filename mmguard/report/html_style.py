"""How the page looks: light and dark, on a desk and on a phone."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f6f7f9; --card: #ffffff; --ink: #1b2029; --soft: #5b6472; --line: #dfe3e9; --code: #eef1f5;
  --error: #c81e4a; --error-soft: #fdecf1; --warning: #a45a00; --warning-soft: #fff4e0;
  --info: #1c62b9; --info-soft: #e8f1fc; --fine: #1b7f4c; --fine-soft: #e6f6ed;
  --valid: #3f76c4; --ignored: #a6adb8; --invalid: #e0006f;
  --shadow: 0 1px 2px rgba(20, 28, 40, .06), 0 4px 16px rgba(20, 28, 40, .05);
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12151a; --card: #1a1f27; --ink: #e6e9ee; --soft: #9aa4b2; --line: #2c333e; --code: #232a34;
    --error: #ff6b92; --error-soft: #38161f; --warning: #f0b154; --warning-soft: #33260f;
    --info: #7db4f5; --info-soft: #15263b; --fine: #62cf95; --fine-soft: #12301f;
    --valid: #6c9fe8; --ignored: #667081; --invalid: #ff4da6; --shadow: none;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
    "Microsoft YaHei", sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 64px }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 2px; letter-spacing: -.01em }
h2 { font-size: 1.2rem; margin: 44px 0 12px; padding-bottom: 6px; border-bottom: 2px solid var(--line) }
h3 { font-size: 1rem; margin: 28px 0 10px }
p { margin: 6px 0 }
a { color: var(--info) }
.soft { color: var(--soft) } .small { font-size: .86rem }
code, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .88em }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; box-shadow: var(--shadow);
  padding: 16px 18px; margin: 12px 0 }
.verdict { border-left: 5px solid var(--tone); font-size: 1.06rem }
.verdict strong { color: var(--tone) }
.error { --tone: var(--error); --tint: var(--error-soft) }
.warning { --tone: var(--warning); --tint: var(--warning-soft) }
.info { --tone: var(--info); --tint: var(--info-soft) } .fine { --tone: var(--fine); --tint: var(--fine-soft) }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 14px 0 }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px }
.tile b { display: block; font-size: 1.3rem; line-height: 1.3; font-variant-numeric: tabular-nums }
.tile.loud b { color: var(--error) }
.finding { border-left: 5px solid var(--tone) }
.finding header { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-bottom: 4px }
.badge { background: var(--tint); color: var(--tone); border-radius: 999px; padding: 1px 10px; font-size: .8rem;
  font-weight: 650 }
.finding .cause { font-weight: 620; margin: 4px 0 8px }
.finding dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px; margin: 0 }
.finding dt { color: var(--soft); font-size: .9rem } .finding dd { margin: 0 }
.write { display: block; width: fit-content; max-width: 100%; background: var(--code); border-radius: 6px;
  padding: 5px 10px; margin: 3px 0; white-space: pre-wrap; border-left: 3px solid var(--tone) }
dd > code:not(.write), .cause code { background: var(--code); border-radius: 4px; padding: 1px 4px }
.file-name { display: block }
.trace { background: var(--code); border-radius: 6px; padding: 10px 12px; margin: 6px 0; overflow-x: auto;
  font: .82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre-wrap }
summary { cursor: pointer; color: var(--soft) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th { text-align: left; color: var(--soft); font-weight: 560; font-size: .84rem }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top }
tr:last-child > td { border-bottom: 0 }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.bar { width: 45%; vertical-align: middle }
.bar i { display: block; height: 11px; border-radius: 2px; min-width: 2px }
.valid { --hue: var(--valid) } .ignored { --hue: var(--ignored) } .invalid { --hue: var(--invalid) }
.bar i, .key { background: var(--hue) }
.ignored .bar i, .key.ignored { background: repeating-linear-gradient(135deg, var(--hue) 0 3px, transparent 3px 6px);
  border: 1px solid var(--hue) }
tr.invalid .value { color: var(--invalid); font-weight: 650 }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .86rem; color: var(--soft); margin: 4px 0 10px }
.file { padding-bottom: 14px } .file h4 { margin: 0 0 2px; font-size: .95rem; font-weight: 600 }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(240px, 1fr)); gap: 12px; margin-top: 10px;
  align-items: start }
figure { margin: 0 } figcaption { color: var(--soft); font-size: .82rem; margin-top: 3px }
svg { display: block; width: 100%; height: auto } .panels svg { border-radius: 6px; background: var(--code) }
.pixels { image-rendering: pixelated } .panels > :only-child { max-width: 720px }
.nothing { border: 1px dashed var(--line); border-radius: 6px; padding: 24px 14px; color: var(--soft);
  font-size: .9rem }
.ring { fill: none; stroke: #fff; stroke-width: 2.5; paint-order: stroke }
.ring.under { stroke: #000; stroke-opacity: .65; stroke-width: 5 }
.plot { display: grid; grid-template-columns: auto 1fr; gap: 0 8px; font-size: .78rem; color: var(--soft);
  font-variant-numeric: tabular-nums }
.plot > div { display: flex; justify-content: space-between } .plot > .up { flex-direction: column; text-align: right }
.plot svg { height: 150px } .plot .along { grid-column: 2 } .plot .grid { stroke: var(--line) }
.plot .axis { stroke: var(--soft) } .plot line { vector-effect: non-scaling-stroke } .plot + figcaption { margin: 0 }
.kind { white-space: nowrap }
details > summary { cursor: pointer; color: var(--soft); margin: 8px 0 }
footer { margin-top: 48px; color: var(--soft); font-size: .84rem }
@media (max-width: 620px) {
  main { padding: 18px 12px 48px } .card { padding: 13px 13px }
  .finding dl { grid-template-columns: 1fr; gap: 0 } .finding dd { margin-bottom: 8px }
  td.bar { width: 22%; min-width: 56px } td, th { padding-right: 8px }
}
@media print { body { background: #fff } .card, .tile { break-inside: avoid; box-shadow: none } }
"""
