// <adopted-style> does what <style> does where the policy allows no inline style: its text becomes a sheet of the
// document. The build puts it in the place of xterm's <style> elements.
class AdoptedStyle extends HTMLElement {
  #sheet = new CSSStyleSheet();
  set textContent(text) {
    this.#sheet.replaceSync(text);
  }
  connectedCallback() {
    this.hidden = true;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }
  disconnectedCallback() {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter(s => s !== this.#sheet);
  }
}

customElements.define('adopted-style', AdoptedStyle);
