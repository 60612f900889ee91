// format.js - numbers, times and sizes as people read them.

const whole = new Intl.NumberFormat('en-US');

export const number = (n) => (n === null || n === undefined ? '–' : whole.format(n));

export function short(n) {
  if (n === null || n === undefined) return '–';
  if (n < 10000) return whole.format(Math.round(n));
  const [unit, per] = n < 1e6 ? ['k', 1e3] : n < 1e9 ? ['M', 1e6] : ['G', 1e9];
  return (n / per).toFixed(n / per < 100 ? 1 : 0) + ' ' + unit;
}

export function rate(n) {
  if (n === null || n === undefined) return '–';
  if (n === 0) return '0';
  return n < 10 ? n.toFixed(1) : short(n);
}

export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–';
  const abs = Math.abs(ms);
  if (abs < 1000) return `${Math.round(ms)} ms`;
  if (abs < 60e3) return `${(ms / 1000).toFixed(abs < 10e3 ? 1 : 0)} s`;
  const two = (big, small, per) => `${Math.trunc(ms / big)}${per[0]} ${Math.trunc((abs % big) / small)}${per[1]}`;
  if (abs < 3600e3) return two(60e3, 1e3, ['m', 's']);
  if (abs < 86400e3) return two(3600e3, 60e3, ['h', 'm']);
  return two(86400e3, 3600e3, ['d', 'h']);
}

export function bytes(n) {
  if (n === null || n === undefined) return '–';
  if (n < 1024) return `${n} B`;
  for (const [unit, per] of [['KiB', 1024], ['MiB', 1024 ** 2], ['GiB', 1024 ** 3]])
    if (n < per * 1024) return `${(n / per).toFixed(1)} ${unit}`;
  return `${(n / 1024 ** 4).toFixed(1)} TiB`;
}

export const age = (moment, now = Date.now()) => (moment ? Math.max(0, now - Date.parse(moment)) : null);

export function clock(moment) {
  const t = new Date(moment);
  return Number.isNaN(t.getTime()) ? String(moment) : t.toLocaleTimeString('en-GB');
}

export function when(moment) {
  if (!moment) return '–';
  const t = new Date(moment);
  if (Number.isNaN(t.getTime())) return String(moment);
  const day = t.toISOString().slice(0, 10);
  return day === new Date().toISOString().slice(0, 10) ? clock(moment) : `${day} ${clock(moment)}`;
}

export const plural = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;

// A duration as the API takes it, "1h30m", in milliseconds; null if it is not one.
export function readDuration(text) {
  const units = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };
  const parts = [...String(text).matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (!parts.length) return /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : null;
  return parts.reduce((sum, [, n, unit]) => sum + Number(n) * units[unit], 0);
}
