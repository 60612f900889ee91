// charts.js - sparklines, charts and gauges as SVG. No styles in attributes: the policy forbids them.
import { h, s } from './dom.js';
import { clock, short } from './format.js';

const known = (values) => (values || []).filter((v) => v !== null && v !== undefined);

function path(values, width, height, top, from = 0) {
  const step = width / Math.max(1, values.length - 1);
  let drawing = false;
  return values.map((v, i) => {
    if (v === null || v === undefined) { drawing = false; return ''; }
    const point = `${(from + i * step).toFixed(1)} ${(height - (v / top) * height).toFixed(1)}`;
    const alone = !drawing && (values[i + 1] === null || values[i + 1] === undefined);
    const word = drawing ? 'L' : 'M';
    drawing = true;
    return word + point + (alone ? 'h0.1' : '');
  }).join('');
}

// The ground below a line, from its first known value on.
function area(values, width, height, top, from = 0) {
  const first = values.findIndex((v) => v !== null && v !== undefined);
  const begin = (from + (first * width) / Math.max(1, values.length - 1)).toFixed(1);
  return `${path(values.map((v, i) => (i < first ? null : v ?? 0)), width, height, top, from)}L${from + width} ${height}L${begin} ${height}Z`;
}

// The ground between two lines; lower undefined: down to 0.
function band(upper, lower, width, height, top, from) {
  const step = width / Math.max(1, upper.length - 1);
  const point = (v, i) => `${(from + i * step).toFixed(1)} ${(height - ((v ?? 0) / top) * height).toFixed(1)}`;
  const known = upper.map((v, i) => i).filter((i) => upper[i] !== null);
  if (known.length < 2) return '';
  return `M${known.map((i) => point(upper[i], i)).join('L')}L${[...known].reverse().map((i) => point(lower ? lower[i] : 0, i)).join('L')}Z`;
}

export function spark(values, label, kind = 'a') {
  const width = 96, height = 22, shown = known(values);
  if (shown.length < 2) return h('span', { class: 'spark none', 'aria-hidden': 'true' });
  const top = Math.max(...shown, 1e-9) * 1.05;
  const line = path(values, width, height - 2, top);
  return s('svg', { class: `spark c-${kind}`, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    s('path', { class: 'area', d: area(values, width, height - 2, top) }),
    s('path', { class: 'line', d: line }));
}

export function gauge(part, whole, label) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return s('svg', { class: 'gauge', viewBox: '0 0 100 6', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    s('rect', { class: 'back', width: 100, height: 6 }),
    s('rect', { class: 'fore', width: (share * 100).toFixed(1), height: 6 }));
}

// A bar of parts in one line: [{name, value, kind}].
export function stack(parts, label) {
  const sum = parts.reduce((n, p) => n + p.value, 0);
  let at = 0;
  return s('svg', { class: 'stack', viewBox: '0 0 100 8', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    s('rect', { class: 'back', width: 100, height: 8 }),
    parts.filter((p) => p.value > 0).map((p) => {
      const width = (p.value / sum) * 100, x = at;
      at += width;
      return s('rect', { class: `c-${p.kind}`, x: x.toFixed(2), width: Math.max(0.4, width).toFixed(2), height: 8 }, s('title', null, `${p.name} ${p.value}`));
    }));
}

// --- charts: lines, or layers that add up, with a legend above and axes ---------------------------

const WIDTH = 480, HEIGHT = 150, BOTTOM = 18, ABOVE = 6;
const INNER = HEIGHT - BOTTOM - ABOVE;
const ROOM = 1.08; // above the highest value

const latest = (values) => known(values).slice(-1)[0];
const shownAs = (v, l, format) => (v === null || v === undefined ? '–' : (l.format || format)(v));

// The values of a step stand in the legend while the pointer is over it; at null: those of the last step.
function show(svg, lines, { format, past, at, x }) {
  const figure = svg.closest('figure');
  if (!figure) return; // it has left the page
  svg.querySelector('.cursor').setAttribute('d', at === null ? '' : `M${x(at).toFixed(1)} 6V132`);
  figure.querySelectorAll('.legend b').forEach((b, i) => { if (lines[i]) b.textContent = shownAs(at === null ? latest(lines[i].values) : lines[i].values?.[at], lines[i], format); });
  figure.querySelector('.at').textContent = past && at !== null ? ` ${clock(new Date(Date.parse(past.end) - (past.steps - 1 - at) * past.step_ms).toISOString())}` : '';
}

const legend = (lines, format) => h('div', { class: 'legend' }, lines.map((l) => h('span', { class: `key c-${l.kind}` },
  s('svg', { viewBox: '0 0 14 8', 'aria-hidden': 'true' }, l.area ? s('path', { class: 'area', d: 'M0 0H14V8H0Z' }) : s('path', { class: `line d-${l.kind}`, d: 'M0 4L14 4' })),
  `${l.name} `, h('b', null, shownAs(latest(l.values), l, format)))));

const grid = (left, right, top, format, ground, most) => [0, 0.5, 1].map((part) => s('g', null,
  s('path', { class: 'grid', d: `M${left} ${(ABOVE + INNER * (1 - part)).toFixed(1)}H${right}` }),
  s('text', { class: 'axis', x: left - 6, y: (10 + INNER * (1 - part)).toFixed(1), 'text-anchor': 'end' }, format((top / ROOM) * part)),
  ground && s('text', { class: `axis c-${ground.kind}`, x: right + 6, y: (10 + INNER * (1 - part)).toFixed(1) }, ground.format((most / ROOM) * part))));

// lines: what the legend has; marks(left, width): what is drawn below `top`.
// ground: a line on a scale of its own, at the right, whose area is drawn below the others.
function draw(title, lines, top, marks, { format = short, from, to, empty, past, ground, width: wide = WIDTH }) {
  const all = ground ? [...lines, { ...ground, area: true }] : lines;
  if (all.flatMap((l) => known(l.values)).length < 2) return h('figure', { class: 'chart' }, h('figcaption', null, title), h('p', { class: 'muted pad' }, empty || 'No data yet. The chart fills while messages move.'));
  const left = 46, right = ground ? wide - 46 : wide, width = right - left;
  const most = ground && Math.max(...known(ground.values), 1) * ROOM;
  const steps = Math.max(...all.map((l) => (l.values || []).length));
  const x = (i) => left + (i * width) / Math.max(1, steps - 1);
  const point = (event) => {
    const at = Math.round(((event.offsetX / event.currentTarget.clientWidth) * wide - left) / (width / Math.max(1, steps - 1)));
    show(event.currentTarget, all, { format, past, x, at: at >= 0 && at < steps ? at : null });
  };
  return h('figure', { class: 'chart' },
    h('figcaption', null, title, h('small', { class: 'at' })), legend(all, format),
    s('svg', { viewBox: `0 0 ${wide} ${HEIGHT}`, onmousemove: point, onmouseleave: (event) => show(event.currentTarget, all, { format, past, x, at: null }), role: 'img', 'aria-label': `${title}: ${all.map((l) => `${l.name} ${shownAs(latest(l.values), l, format)}`).join(', ')}` },
      grid(left, right, top, format, ground, most),
      s('g', { transform: `translate(0 ${ABOVE})` }, ground && s('g', { class: `c-${ground.kind}` }, s('path', { class: 'area', d: area(ground.values, width, INNER, most, left) })), marks(left, width)),
      s('path', { class: 'cursor', d: '' }),
      s('text', { class: 'axis', x: left, y: HEIGHT - 2 }, from || ''),
      s('text', { class: 'axis', x: right, y: HEIGHT - 2, 'text-anchor': 'end' }, to || 'now')));
}

const topOf = (values) => Math.max(...known(values), 1) * ROOM;
const lineOf = (l, width, top, left) => s('path', { class: `line d-${l.kind}`, d: path(l.values, width, INNER, top, left) });

// lines: [{name, values, kind}]; options: format, from, to, empty, width, ground, past: a history of the server, for the time of a
// value under the pointer.
export function chart(title, lines, options = {}) {
  const top = topOf(lines.flatMap((l) => l.values || []));
  return draw(title, lines, top, (left, width) => lines.filter((l) => l.values).map((l, i) => s('g', { class: `c-${l.kind}` },
    i === 0 && !options.ground && s('path', { class: 'area', d: area(l.values, width, INNER, top, left) }), lineOf(l, width, top, left))), options);
}

// Parts that add up, one on top of another; options.line: a line beside them.
export function layers(title, parts, { line, ...options } = {}) {
  const steps = Math.max(0, ...parts.map((p) => (p.values || []).length));
  const sums = parts.map((_, i) => Array.from({ length: steps }, (__, at) => {
    const below = parts.slice(0, i + 1).map((p) => p.values?.[at] ?? null);
    return below.every((v) => v === null) ? null : below.reduce((n, v) => n + (v || 0), 0);
  }));
  const top = topOf([...sums.flat(), ...(line?.values || [])]);
  const layer = (p, i, left, width) => s('g', { class: `c-${p.kind}` }, s('path', { class: 'area layer', d: band(sums[i], sums[i - 1], width, INNER, top, left) }), lineOf({ ...p, values: sums[i] }, width, top, left));
  return draw(title, line ? [...parts, line] : parts, top, (left, width) => [
    parts.map((p, i) => known(p.values).some((v) => v > 0) && layer(p, i, left, width)).reverse(), line?.values && s('g', { class: `c-${line.kind}` }, lineOf(line, width, top, left))], options);
}

// bars: [{label, value, kind, href}]
export function bars(rows, label) {
  const top = Math.max(1, ...rows.map((r) => r.value));
  return h('table', { class: 'bars' }, h('caption', { class: 'hidden' }, label), h('tbody', null, rows.map((r) => h('tr', null,
    h('th', { scope: 'row' }, r.href ? h('a', { href: r.href }, r.label) : r.label),
    h('td', { class: 'bar' }, gauge(r.value, top, `${r.value}`)),
    h('td', { class: 'num' }, short(r.value))))));
}

// A histogram: [{label, title, value}], a column each.
export function columns(rows, label) {
  const whole = 640, width = whole / rows.length, top = Math.max(1, ...rows.map((r) => r.value)), room = 16; // for a number above, a label below
  const tall = HEIGHT - 2 * room;
  return s('svg', { class: 'columns-chart', viewBox: `0 0 ${whole} ${HEIGHT}`, role: 'img', 'aria-label': `${label}: ${rows.filter((r) => r.value).map((r) => `${r.title} ${r.value}`).join(', ') || 'none'}` },
    rows.map((r, i) => s('g', { class: 'c-delayed' }, s('title', null, `${r.title}: ${r.value}`),
      s('rect', { x: (i * width + 1).toFixed(1), width: (width - 2).toFixed(1), y: (room + tall * (1 - r.value / top)).toFixed(1), height: (tall * (r.value / top)).toFixed(1) }),
      r.value > 0 && s('text', { class: 'axis', x: (i * width + width / 2).toFixed(1), y: (room - 3 + tall * (1 - r.value / top)).toFixed(1), 'text-anchor': 'middle' }, short(r.value)),
      s('text', { class: 'axis', x: (i * width).toFixed(1), y: HEIGHT - 3 }, r.label))),
    s('path', { class: 'grid', d: `M0 ${HEIGHT - room}H${whole}` }));
}
