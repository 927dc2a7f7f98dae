export const strings = {
  create: 'New company',
  title: 'Create a company',
  hint: 'An account that several people share. You become its owner and can invite others. It has its own tasks, tool servers, credits and plan.',
  name: 'Name',
  placeholder: 'Acme',
  nameMissing: 'Enter the name of the company.',
  action: 'Create company',
  cancel: 'Cancel',
  created: (name: string) => `${name} was created. Invite others on this page.`,
};
