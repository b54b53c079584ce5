// A list that the server gives in pages, each behind the last name of the one before it: read as far as it is looked at.

const MOST_REQUESTS = 60;

export class Paged {
  #fetch;
  #accept;
  #chunks = [];
  #generation = 0;

  // `fetch(after)` promises `{rows, next}`; `accept` says which rows count.
  constructor(fetch, accept = () => true) {
    this.#fetch = fetch;
    this.#accept = accept;
  }

  get rows() {
    return this.#chunks.flatMap((chunk) => chunk.rows);
  }

  get isWhole() {
    return this.#chunks.length > 0 && this.#chunks.at(-1).next === null;
  }

  // What is still under way is for nobody.
  cancel() {
    this.#generation += 1;
  }

  // Read anew what has the rows `first` to `last`, and what is missing of them. Says whether it is still wanted then.
  async refresh(first, last) {
    const generation = (this.#generation += 1);
    let index = 0;
    let row = 0;
    while (index < this.#chunks.length - 1 && row + this.#chunks[index].rows.length <= first) {
      row += this.#chunks[index].rows.length;
      index += 1;
    }
    const fresh = [];
    let after = this.#chunks[index]?.after ?? null;
    do {
      const page = await this.#fetch(after);
      if (generation !== this.#generation) return false;
      const rows = page.rows.filter(this.#accept);
      fresh.push({ after, rows, next: page.next ?? null });
      row += rows.length;
      after = page.next ?? null;
    } while (after !== null && row <= last && fresh.length < MOST_REQUESTS);
    const behind = this.#chunks.slice(index + fresh.length);
    const joins = behind.length > 0 && behind[0].after === after;
    this.#chunks.splice(index, Infinity, ...fresh, ...(joins ? behind : []));
    return true;
  }
}
