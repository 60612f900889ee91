// login.js - asks for a token. It stays in memory: a reload of the page asks again.
import { h } from './dom.js';
import { begin, session } from './api.js';
import { command, messageOf } from './ui.js';

export function view() {
  const said = h('p', { class: 'error', role: 'alert', id: 'login-said' });
  const submit = async (event) => {
    event.preventDefault();
    session.token = event.target.elements.token.value.trim().replace(/^bearer\s+/i, '');
    said.textContent = '';
    try {
      await begin();
    } catch (error) {
      session.token = null;
      said.textContent = messageOf(error);
    }
  };
  return h('main', { class: 'login', id: 'main' }, h('form', { class: 'card', onsubmit: submit },
    h('h1', null, 'Sluice'), h('p', null, 'This server asks for a token, or for a client certificate that your browser shows.'),
    h('div', { class: 'field' }, h('label', { for: 'token' }, 'Token'), h('input', { type: 'password', id: 'token', name: 'token', required: true, autocomplete: 'off', 'aria-describedby': 'token-help' }),
      h('small', { id: 'token-help' }, 'The token stays in the memory of this tab and is sent to this server only.')),
    said, h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'btn primary' }, 'Log in')),
    h('p', { class: 'muted' }, 'A token that can look at everything:'), command("sluice token --secret-file secret '*:read'")));
}
