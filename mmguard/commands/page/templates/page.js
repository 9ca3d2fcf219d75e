// Add a copy button to each line of an edit. It also selects the line, so that Ctrl+C works if copying is forbidden.
for (const line of document.querySelectorAll('.write')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    getSelection().selectAllChildren(line);
    try {
      await navigator.clipboard.writeText(line.textContent);
      button.textContent = 'Copied';
    } catch {
      button.textContent = document.execCommand('copy') ? 'Copied' : 'Selected';
    }
  });
  const row = document.createElement('div');
  row.className = 'row';
  line.replaceWith(row);
  row.append(line, button);
}
