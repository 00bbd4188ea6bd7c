"""The page's style: light and dark by what the reader's system says, narrow screens, paper."""

from ragstone.reporting.html.markup import Html

STYLE = Html("""
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --text: #1f2428; --soft: #5c656e; --rule: #e2e3df;
  --tone: #22717a; --band: #22717a2b; --bar: #5f9fa6; --mark: #fdeac4; --cost: #9a5300;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1b1f23; --text: #e3e6e8; --soft: #9ca5ad; --rule: #30363c;
    --tone: #74c3ca; --band: #74c3ca30; --bar: #4a8f96; --mark: #4b3510; --cost: #e7ad63;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 2rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 0 0 .25rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
h4 { font-size: .95rem; margin: 0 0 .25rem; color: var(--soft); font-weight: 600; }
p { margin: .25rem 0; }
a { color: var(--tone); }
.soft { color: var(--soft); font-size: .9rem; }
.card {
  margin-top: 1.25rem; padding: 1.25rem; background: var(--card); border: 1px solid var(--rule); border-radius: .6rem;
}
.figures { display: flex; flex-wrap: wrap; gap: .25rem 2rem; margin: .75rem 0; }
.figures > div { min-width: 6rem; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.figures dd small { font-size: .85rem; color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .9rem; font-weight: 600; }
figcaption small { color: var(--soft); font-weight: 400; font-size: .85rem; }
svg { display: block; width: 100%; max-width: 34rem; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); }
.whisker { stroke: var(--band); stroke-width: 2.5; }
.line { fill: none; stroke: var(--tone); stroke-width: 1.75; stroke-linejoin: round; }
.dot { fill: var(--tone); }
.bar { fill: var(--bar); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: start; color: var(--soft); padding-bottom: .25rem; }
th, td { padding: .3rem 1.25rem .3rem 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; overflow-wrap: normal; }
tbody th { font-weight: 400; }
td.number, th.number { text-align: end; white-space: nowrap; overflow-wrap: normal; }
time { white-space: nowrap; }
td.text { overflow-wrap: break-word; max-width: 30rem; }
summary { cursor: pointer; padding: .3rem 0; }
details.low { border-top: 1px solid var(--rule); }
details.low[open] { padding-bottom: 1rem; }
details.low > summary .soft { margin-inline-start: .5rem; }
details.low > summary b { font-variant-numeric: tabular-nums; margin-inline-end: .75rem; }
ul.items { margin: .5rem 0; padding-inline-start: 1.2rem; }
ul.items li { margin: .25rem 0; }
.word { color: var(--cost); font-weight: 600; }
.word.plain { color: inherit; }
.text { white-space: pre-wrap; }
.passage { margin: .75rem 0 0; }
.passage > .text {
  max-height: 18rem; overflow-y: auto; padding: .5rem .75rem; border-inline-start: 3px solid var(--rule);
  font-size: .95rem;
}
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: .5rem 1.5rem; }
.sides > div { min-width: 0; }
mark { background: var(--mark); color: inherit; border-bottom: 1.5px solid var(--cost); }
:focus-visible { outline: 2px solid var(--tone); outline-offset: 2px; }
@media (max-width: 30rem) { body { padding: 1rem .5rem 2rem; } .card { padding: .9rem; } svg text { font-size: 13px; } }
@media print {
  :root { --page: #fff; --card: #fff; --text: #000; --soft: #444; --rule: #bbb; }
  body { max-width: none; padding: 0; }
  .card { border: 0; padding: 0; }
  .passage > .text { max-height: none; }
  figure, tr, li { break-inside: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
""")
