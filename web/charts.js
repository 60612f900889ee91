// charts.js - sparklines, charts and gauges as SVG. No styles in attributes: the policy forbids them.
import { h, s } from './dom.js';
import { clock, short, duration } from './format.js';

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

const latest = (values) => known(values).slice(-1)[0];

// The values of a step stand in the legend while the pointer is over it.
function show(svg, lines, { format, past, at, steps, x }) {
  const figure = svg.closest('figure');
  if (!figure) return;
  if (at < 0 || at >= steps) { unshow(svg, lines, format); return; }
  svg.querySelector('.cursor').setAttribute('d', `M${x(at).toFixed(1)} 6V132`);
  figure.querySelectorAll('.legend b').forEach((b, i) => { const v = lines[i]?.values?.[at]; b.textContent = v === null || v === undefined ? '–' : format(v); });
  figure.querySelector('.at').textContent = past ? ` ${clock(new Date(Date.parse(past.end) - (steps - 1 - at) * past.step_ms).toISOString())}` : '';
}

function unshow(svg, lines, format) {
  const figure = svg.closest('figure');
  if (!figure) return; // it has left the page
  svg.querySelector('.cursor').setAttribute('d', '');
  figure.querySelectorAll('.legend b').forEach((b, i) => { b.textContent = format(latest(lines[i]?.values) ?? 0); });
  figure.querySelector('.at').textContent = '';
}

// lines: [{name, values, kind}]; a legend with the last values stands above.
// past: a history of the server, for the time of a value under the pointer.
export function chart(title, lines, { format = short, from, to, empty, past } = {}) {
  const width = 640, height = 150, left = 46, bottom = 18;
  const all = lines.flatMap((l) => known(l.values));
  if (all.length < 2) return h('figure', { class: 'chart' }, h('figcaption', null, title), h('p', { class: 'muted pad' }, empty || 'No data yet. The chart fills while messages move.'));
  const top = Math.max(...all, format === duration ? 1 : 1) * 1.08;
  const inner = height - bottom - 6;
  const steps = Math.max(...lines.map((l) => (l.values || []).length));
  const point = (event) => show(event.currentTarget, lines, { format, past, at: Math.round(((event.offsetX / event.currentTarget.clientWidth) * width - left) / ((width - left) / Math.max(1, steps - 1))), steps, x: (i) => left + (i * (width - left)) / Math.max(1, steps - 1) });
  return h('figure', { class: 'chart' },
    h('figcaption', null, title, h('small', { class: 'at' })),
    h('div', { class: 'legend' }, lines.map((l) => h('span', { class: `key c-${l.kind}` },
      s('svg', { viewBox: '0 0 14 8', 'aria-hidden': 'true' }, s('path', { class: `line d-${l.kind}`, d: 'M0 4L14 4' })),
      `${l.name} `, h('b', null, format(latest(l.values) ?? 0))))),
    s('svg', { viewBox: `0 0 ${width} ${height}`, onmousemove: point, onmouseleave: (event) => unshow(event.currentTarget, lines, format), role: 'img', 'aria-label': `${title}: ${lines.map((l) => `${l.name} ${format(latest(l.values) ?? 0)}`).join(', ')}` },
      [0, 0.5, 1].map((part) => s('g', null,
        s('path', { class: 'grid', d: `M${left} ${(6 + inner * (1 - part)).toFixed(1)}H${width}` }),
        s('text', { class: 'axis', x: left - 6, y: (10 + inner * (1 - part)).toFixed(1), 'text-anchor': 'end' }, format((top / 1.08) * part)))),
      s('g', { transform: 'translate(0 6)' }, lines.map((l, i) => s('g', { class: `c-${l.kind}` },
        i === 0 && s('path', { class: 'area', d: area(l.values, width - left, inner, top, left) }),
        s('path', { class: `line d-${l.kind}`, d: path(l.values, width - left, inner, top, left) })))),
      s('path', { class: 'cursor', d: '' }),
      s('text', { class: 'axis', x: left, y: height - 2 }, from || ''),
      s('text', { class: 'axis', x: width, y: height - 2, 'text-anchor': 'end' }, to || 'now')));
}

// bars: [{label, value, kind, href}]
export function bars(rows, label) {
  const top = Math.max(1, ...rows.map((r) => r.value));
  return h('table', { class: 'bars' }, h('caption', { class: 'hidden' }, label), h('tbody', null, rows.map((r) => h('tr', null,
    h('th', { scope: 'row' }, r.href ? h('a', { href: r.href }, r.label) : r.label),
    h('td', { class: 'bar' }, gauge(r.value, top, `${r.value}`)),
    h('td', { class: 'num' }, short(r.value))))));
}
